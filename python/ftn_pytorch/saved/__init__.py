# SPDX-License-Identifier: MIT
"""Saved recordings: files with recorded functions of a script and its state, which run without it.

``writing`` writes them: ``portable`` says what a file holds of a recording, ``distinct`` which recordings go into it,
``any_batch`` makes one of several. ``saved_recording`` runs them, by the reader in src/ftr.
"""
