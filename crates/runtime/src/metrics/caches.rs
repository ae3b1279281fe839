//! The sizes of what controllers remember, read when somebody asks.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLabels {
    controller: String,
    cache: &'static str,
}

/// The number of entries of one cache.
pub(crate) type CacheSize = (&'static str, usize);

/// Registers how many entries each cache of each controller has now.
pub(crate) fn register_cache_sizes<'a>(
    registry: &mut Registry,
    controllers: impl IntoIterator<Item = (&'a str, Vec<CacheSize>)>,
) {
    let entries: Family<CacheLabels, Gauge> = Family::default();
    for (controller, sizes) in controllers {
        for (cache, size) in sizes {
            let labels = CacheLabels {
                controller: controller.to_owned(),
                cache,
            };
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            entries.get_or_create(&labels).set(size);
        }
    }
    registry.register(
        "windlass_cache_entries",
        "Entries of a cache of a controller",
        entries,
    );
}
