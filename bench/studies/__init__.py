# SPDX-License-Identifier: MIT
"""One folder for each study of `brimful bench study`; cli/brimful/bench/study/ says what a study is.

`./brimful bench study` lists them with their times and the pages they write.
"""
