//! The environment in which selectors of devices are evaluated.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use windlass_core::{Doc, Quantity};

use crate::environment::Environment;
use crate::types::Decl;
use crate::types::{Opaque, Type};
use crate::value::{Map, Value};

/// The variable of device selectors.
pub const DEVICE: &str = "device";

/// The longest domain and driver name, and the longest id.
const DOMAIN_MAX: u64 = 63;
const ID_MAX: u64 = 32;
/// The longest attribute value.
const VALUE_MAX: u64 = 64;
/// Most attributes and capacities of one device.
const ENTRIES_MAX: u64 = 32;

/// The environment of device selectors, with the variable `device`.
///
/// ```
/// use windlass_cel::{device_environment, device_value, Bindings, Budget, DEVICE};
/// use windlass_core::doc;
///
/// let program = device_environment().compile("device.attributes['gpu.example.com'].model == 'a100'")?;
/// let device = doc!({ "attributes": { "model": { "string": "a100" } } });
/// let device = device_value("gpu.example.com", &device)?;
/// let value = program.evaluate(&Bindings::new().with(DEVICE, device), &mut Budget::default())?;
/// assert_eq!(value.as_bool(), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn device_environment() -> &'static Environment {
    static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
        Environment::builder()
            .variable(DEVICE, device_decl())
            .with_bind()
            .build()
    });
    &ENVIRONMENT
}

fn device_decl() -> Arc<Decl> {
    let text = |size_max| Decl::plain(Type::String, size_max);
    let by_domain = |value| {
        let inner = Decl::map(text(ID_MAX), value, ENTRIES_MAX);
        Decl::map(text(DOMAIN_MAX), inner, ENTRIES_MAX)
    };
    let attributes = by_domain(Decl::plain(Type::Dyn, VALUE_MAX));
    let capacity = by_domain(Decl::plain(Type::Opaque(Opaque::Quantity), 0));
    Decl::object(
        "kubernetes.DRADevice",
        [
            ("driver".into(), text(DOMAIN_MAX)),
            ("attributes".into(), attributes),
            ("capacity".into(), capacity),
            (
                "allowMultipleAllocations".into(),
                Decl::plain(Type::Bool, 1),
            ),
        ],
    )
}

/// Why a device cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// An attribute is not of a type that expressions know.
    #[error("attribute {0}: unsupported attribute value")]
    Attribute(String),
    /// An attribute is not the version it claims to be.
    #[error("attribute {0}: parse semantic version: {1}")]
    Version(String, String),
    /// A capacity is not a quantity.
    #[error("capacity {0}: {1}")]
    Capacity(String, String),
}

/// A device of a ResourceSlice as selectors see it. Names without a domain are the driver's.
pub fn device_value(driver: &str, device: &Doc) -> Result<Value, DeviceError> {
    let mut attributes = Domains::new();
    for (name, attribute) in entries(device.at("/attributes")) {
        let (domain, id) = qualified(name, driver);
        attributes
            .entry(domain)
            .or_default()
            .push((id, attribute_value(name, attribute)?));
    }
    let mut capacity = Domains::new();
    for (name, amount) in entries(device.at("/capacity")) {
        let (domain, id) = qualified(name, driver);
        capacity
            .entry(domain)
            .or_default()
            .push((id, capacity_value(name, amount)?));
    }
    let is_shared = device
        .at("/allowMultipleAllocations")
        .as_bool()
        .unwrap_or(false);
    Ok(Value::Map(Map::from_entries([
        ("driver".to_owned(), Value::from(driver)),
        ("attributes".to_owned(), by_domain(attributes)),
        ("capacity".to_owned(), by_domain(capacity)),
        (
            "allowMultipleAllocations".to_owned(),
            Value::Bool(is_shared),
        ),
    ])))
}

type Domains = BTreeMap<String, Vec<(String, Value)>>;

fn entries(map: &Doc) -> impl Iterator<Item = (&str, &Doc)> {
    map.as_object()
        .into_iter()
        .flat_map(|object| object.iter())
        .map(|(key, value)| (key.as_str(), value))
}

fn qualified(name: &str, driver: &str) -> (String, String) {
    let (domain, id) = name.split_once('/').unwrap_or((driver, name));
    (domain.to_owned(), id.to_owned())
}

fn by_domain(domains: Domains) -> Value {
    let maps = domains
        .into_iter()
        .map(|(domain, values)| (domain, Value::Map(Map::from_entries(values))));
    Value::Map(Map::from_entries(maps).with_empty_default())
}

fn attribute_value(name: &str, attribute: &Doc) -> Result<Value, DeviceError> {
    if let Some(number) = attribute.at("/int").as_i64() {
        return Ok(Value::Int(number));
    }
    if let Some(value) = attribute.at("/bool").as_bool() {
        return Ok(Value::Bool(value));
    }
    if attribute.at("/string").as_str().is_some() {
        return Ok(Value::from(attribute.at("/string")));
    }
    if let Some(version) = attribute.at("/version").as_str() {
        return version
            .parse()
            .map(|version| Value::Semver(Arc::new(version)))
            .map_err(|error: crate::value::SemverError| {
                DeviceError::Version(name.to_owned(), error.to_string())
            });
    }
    Err(DeviceError::Attribute(name.to_owned()))
}

fn capacity_value(name: &str, amount: &Doc) -> Result<Value, DeviceError> {
    amount
        .at("/value")
        .decode::<Quantity>()
        .map(|quantity| Value::Quantity(Arc::new(quantity)))
        .map_err(|error| DeviceError::Capacity(name.to_owned(), error.to_string()))
}
