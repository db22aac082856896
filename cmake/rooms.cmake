# A room of the house is one folder of warpwright/ and one library (of some of its files, where
# SOURCES names them). It sees the rooms below it (DEPENDS) and no others; tests/lint checks the
# #includes against the same order.

# The warnings that the sources are kept free of; others may be given instead. They stop the build
# only for developers: a compiler of tomorrow has warnings of its own.
if(NOT DEFINED WARPWRIGHT_WARNINGS)
  set(WARPWRIGHT_WARNINGS -Wall -Wextra -Wno-unknown-pragmas)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # (g++ 13 takes a reference that a function returns for one to a temporary string_view argument.)
    list(APPEND WARPWRIGHT_WARNINGS -Wshadow=local -Wno-dangling-reference)
  endif()
endif()
if(WARPWRIGHT_WERROR)
  list(APPEND WARPWRIGHT_WARNINGS -Werror)
endif()

function(ww_room name)
  cmake_parse_arguments(ARG "" "FOLDER" "DEPENDS;LIBRARIES;SOURCES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/warpwright/${name}/*.cpp)
  if(ARG_SOURCES)
    set(folder ${name})
    if(ARG_FOLDER)
      set(folder ${ARG_FOLDER})
    endif()
    list(TRANSFORM ARG_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/warpwright/${folder}/
         OUTPUT_VARIABLE sources)
  endif()
  set(target warpwright_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(kind PUBLIC)
    target_compile_options(${target} PRIVATE ${WARPWRIGHT_WARNINGS})
  else()
    add_library(${target} INTERFACE)
    set(kind INTERFACE)
  endif()
  target_compile_features(${target} ${kind} cxx_std_20)
  target_include_directories(${target} ${kind}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(room ${ARG_DEPENDS})
    target_link_libraries(${target} ${kind} warpwright_${room})
  endforeach()
  target_link_libraries(${target} ${kind} ${ARG_LIBRARIES})
endfunction()

# ww_texts(WORD PATTERN HEADER): a header of a room with the texts of files: cmake/'s template of its
# name, with @WARPWRIGHT_TEXTS@, into WORD/ of the build. PATTERN begins at the project's folder, or
# is an archive there, whose files are unpacked into WORD/.
function(ww_texts word pattern header)
  if(pattern MATCHES "[.]tar[.]xz$")
    set(archive ${PROJECT_SOURCE_DIR}/${pattern})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${archive})
    file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/${word}/texts)
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${PROJECT_BINARY_DIR}/${word}/texts)
    file(GLOB files ${PROJECT_BINARY_DIR}/${word}/texts/*)
  else()
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  endif()
  foreach(file ${files})
    file(READ ${file} text)
    string(APPEND WARPWRIGHT_TEXTS "R\"${word}(${text})${word}\",\n")
  endforeach()
  get_filename_component(name ${header} NAME)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.in
                 ${PROJECT_BINARY_DIR}/${word}/warpwright/${header} @ONLY)
endfunction()

# ww_page_files(): a header with the style and the script of a picture's page, for pictures/page.cpp.
function(ww_page_files)
  set(folder ${PROJECT_SOURCE_DIR}/warpwright/pictures)
  file(READ ${folder}/page.css WARPWRIGHT_PAGE_STYLE)
  file(READ ${folder}/page.js WARPWRIGHT_PAGE_SCRIPT)
  file(SHA256 ${folder}/page.js WARPWRIGHT_PAGE_SCRIPT_HASH)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/page.css ${folder}/page.js)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/page_files.h.in
                 ${PROJECT_BINARY_DIR}/pictures/warpwright/pictures/page_files.h @ONLY)
endfunction()

# ww_public(NAME TARGETS...): warpwright::NAME, for users of the build and of the installed package.
function(ww_public name)
  set(target warpwright_public_${name})
  add_library(${target} INTERFACE)
  add_library(warpwright::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(${target} INTERFACE ${ARGN})
endfunction()

# ww_self_contained(TARGET PATTERN): a shared library that shows only the symbols of that pattern
# and brings the C++ library along, so that it gets along with any other in its process.
function(ww_self_contained target pattern)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/arc4random.cpp)
  set(map ${PROJECT_BINARY_DIR}/${target}.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "{ global: ${pattern}; local: *; };\n")
  target_link_options(${target} PRIVATE -Wl,--version-script=${map}
    -static-libstdc++ -static-libgcc)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()
