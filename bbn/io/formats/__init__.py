"""The file formats, one reader and writer each; `bbn.io.registry` lists them."""
