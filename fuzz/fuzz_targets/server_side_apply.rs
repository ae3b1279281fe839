#![no_main]
//! See `windlass_fuzz::targets::server_side_apply`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::server_side_apply(data);
});
