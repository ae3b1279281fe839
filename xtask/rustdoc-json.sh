#!/bin/sh
# rustdoc of the stable toolchain with its JSON output, which `cargo xtask external-types` reads.
# The variable is set for rustdoc alone: the build scripts of dependencies would run again for it.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
