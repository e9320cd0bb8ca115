#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Digests where the processor has no SHA extensions: OpenSSL's, by the same test.
cd "$ROOT" || exit 2
MOE_CPU=ref exec "$B/tests/unit/digest"
