#![no_main]
//! See `windlass_fuzz::targets::strategic_merge_patch`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::strategic_merge_patch(data);
});
