# SPDX-License-Identifier: MIT
"""Promises of the library, each for all scripts of the folder ``corpus``, against the numbers of plain Python.

A promise is a function of a script and these numbers, in a module of its own. ``asked`` has the list.

- ``scripts`` reads the corpus, ``crossing`` makes scripts of kinds of values, places and ways.
- ``plain`` calls a script as it is, ``state`` looks at what it has then.
- ``matrix`` counts. ``python promises``, in the folder above, prints the verdicts.
"""
