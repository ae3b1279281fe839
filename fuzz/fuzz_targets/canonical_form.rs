#![no_main]
//! See `windlass_fuzz::targets::canonical_form`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::canonical_form(data);
});
