#![no_main]
//! See `windlass_fuzz::targets::request_target`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::request_target(data);
});
