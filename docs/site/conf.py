# Sphinx's configuration of the site (script/site): Markdown as GitHub reads it, and nothing from
# outside.
project = "Warpwright"
author = "the authors of Warpwright"
copyright = author
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["static", "extra"]
html_theme = "furo"
html_title = "Warpwright"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["extra"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
# Anchors as GitHub makes them; all headings have one.
myst_heading_anchors = 6
myst_links_external_new_tab = False
# What our blocks show need not be whole programs.
suppress_warnings = ["misc.highlighting_failure"]
