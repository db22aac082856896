"""The files of a checkout, or of a copy without git."""
import subprocess


def tracked(root):
    """Names of the files under `root` that git knows or would, sorted; without git those outside of
    build folders."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others",
                             "--exclude-standard", "--deduplicate"],
                            capture_output=True, text=True, check=False).stdout.splitlines()
    if not listed:
        listed = [str(path.relative_to(root)) for path in root.rglob("*")
                  if not any(part.startswith((".git", "build"))
                             for part in path.relative_to(root).parts)]
    return [name for name in sorted(listed) if (root / name).is_file()]
