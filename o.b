timeout: failed to run command ‘./tst-malloc-usable-tunables’: No such file or directory
