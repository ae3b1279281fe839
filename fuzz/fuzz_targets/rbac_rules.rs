#![no_main]
//! See `windlass_fuzz::targets::rbac_rules`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = windlass_fuzz::targets::rbac_rules(data);
});
