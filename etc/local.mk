dist_doc_DATA = etc/stagetool.conf

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = etc/completion/stagetool
