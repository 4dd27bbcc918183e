dist_doc_DATA = etc/stagetool.conf
