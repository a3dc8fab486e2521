"""How Sphinx makes the site: `make docs`, then open ``docs/_build/html/index.html``.

Pages that follow from the code (public names, methods, the command, the HTTP API) are written by `_ext/generated.py`
before Sphinx reads its sources; what belongs to the whole site (``llms.txt``, the site map, redirects) by
`_ext/site_files.py` afterwards. Nothing on a page is loaded from elsewhere: formulas are MathML, and fonts those of the
reader.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# The examples and the blocks of the pages find no data of the machine that builds the site.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from reference import renamed_pages

import labelrace

project = "labelrace"
author = "The labelrace developers"
project_copyright = author
version = release = labelrace.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "notfound.extension",
    "gallery_pages",
    "generated",
    "mathml",
    "site_files",
]
exclude_patterns = ["_build", "gallery_sources", "**/GALLERY_HEADER.rst", "**sg_execution_times.rst"]
root_doc = "index"
# Names between single backquotes are code.
default_role = "code"
# `--tags` stays two hyphens.
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# The pages are written by `_ext/reference.py`.
autosummary_generate = False
autosummary_filename_map = renamed_pages()
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery_sources",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "plot_gallery": True,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    # Times are those of the machine that builds the site: of no use to readers.
    "min_reported_time": 3600,
    # Their pages load scripts from elsewhere.
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "labelrace"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
# Where the site stands: for the site map and the links of llms.txt.
html_baseurl = os.environ.get("LABELRACE_SITE", "")
html_theme_options = {
    "logo": {"text": "labelrace"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# The page is shown for addresses of any depth.
notfound_urls_prefix = urlsplit(html_baseurl).path.rstrip("/") + "/"
# Pages that stood elsewhere: the old place leads to the new one.
site_redirects = {
    "architecture": "project/architecture",
    "default": "guide/default",
    "extreme": "guide/extreme",
    "methods": "methods/index",
    "reliability": "guide/reliability",
    "scale": "guide/scale",
    "guide/search": "in-depth/search",
    "service": "guide/service",
    "tags": "guide/tags",
}
