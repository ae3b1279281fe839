#![no_main]
//! See `windlass_fuzz::targets::field_set`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::field_set(data);
});
