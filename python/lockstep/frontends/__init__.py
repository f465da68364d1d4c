# SPDX-License-Identifier: Apache-2.0
"""The ways in which people write TensorFlow, one module each: the seam it uses, and for which versions."""
