#![no_main]
//! See `windlass_fuzz::targets::continue_token`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::continue_token(data);
});
