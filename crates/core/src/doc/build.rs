//! Building documents in code: conversions, comparisons with plain values, and `doc!`.

use super::short::ShortStr;
use super::{Array, Doc, Object, Repr, Str};

impl From<bool> for Doc {
    fn from(value: bool) -> Self {
        Self(Repr::Bool(value))
    }
}

impl From<i64> for Doc {
    fn from(value: i64) -> Self {
        Self(Repr::Int(value))
    }
}

impl From<i32> for Doc {
    fn from(value: i32) -> Self {
        Self(Repr::Int(value.into()))
    }
}

impl From<u32> for Doc {
    fn from(value: u32) -> Self {
        Self(Repr::Int(value.into()))
    }
}

impl From<u64> for Doc {
    fn from(value: u64) -> Self {
        Self(i64::try_from(value).map_or(Repr::UInt(value), Repr::Int))
    }
}

impl From<usize> for Doc {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl From<f64> for Doc {
    /// JSON has no word for what is not a finite number; such a value becomes `null`.
    fn from(value: f64) -> Self {
        Self(if value.is_finite() {
            Repr::Float(value)
        } else {
            Repr::Null
        })
    }
}

impl From<Str> for Doc {
    fn from(text: Str) -> Self {
        Self(ShortStr::new(&text).map_or(Repr::Str(text), Repr::Short))
    }
}

impl From<&str> for Doc {
    fn from(text: &str) -> Self {
        Self(ShortStr::new(text).map_or_else(|| Repr::Str(Str::new(text)), Repr::Short))
    }
}

impl From<&String> for Doc {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for Doc {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<Array> for Doc {
    fn from(array: Array) -> Self {
        Self(Repr::Array(array))
    }
}

impl From<Vec<Self>> for Doc {
    fn from(items: Vec<Self>) -> Self {
        Array::new(&items).into()
    }
}

impl From<Object> for Doc {
    fn from(object: Object) -> Self {
        Self(Repr::Object(object))
    }
}

impl From<&Self> for Doc {
    fn from(doc: &Self) -> Self {
        doc.clone()
    }
}

impl<T: Into<Self>> From<Option<T>> for Doc {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NULL, Into::into)
    }
}

impl PartialEq<str> for Doc {
    fn eq(&self, other: &str) -> bool {
        self.text_bytes()
            .is_some_and(|text| text == other.as_bytes())
    }
}

impl PartialEq<&str> for Doc {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialEq<i64> for Doc {
    fn eq(&self, other: &i64) -> bool {
        self.as_i64() == Some(*other)
    }
}

impl PartialEq<i64> for &Doc {
    fn eq(&self, other: &i64) -> bool {
        self.as_i64() == Some(*other)
    }
}

impl PartialEq<bool> for &Doc {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

impl PartialEq<bool> for Doc {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

/// Builds a [`Doc`](crate::Doc) from JSON-like text; any expression that converts into a `Doc`
/// may stand as a value.
///
/// ```
/// use windlass_core::doc;
/// let replicas = 3;
/// let spec = doc!({ "replicas": replicas, "paused": false, "args": ["-v", null] });
/// assert_eq!(spec.at("/replicas"), 3);
/// ```
#[macro_export]
macro_rules! doc {
    (null) => { $crate::Doc::NULL };
    ([ $($item:tt),* $(,)? ]) => {
        $crate::Doc::from(::std::vec![ $( $crate::doc!($item) ),* ])
    };
    ({ $($body:tt)* }) => {{
        #[allow(unused_mut, reason = "an empty object has no fields to push")]
        let mut fields: ::std::vec::Vec<($crate::Str, $crate::Doc)> = ::std::vec::Vec::new();
        $crate::doc!(@fields fields $($body)*);
        $crate::Doc::from($crate::Object::new(fields))
    }};
    (@fields $fields:ident) => {};
    (@fields $fields:ident $key:tt : null $(, $($rest:tt)*)?) => {
        $fields.push(($crate::Str::from($key), $crate::Doc::NULL));
        $crate::doc!(@fields $fields $($($rest)*)?);
    };
    (@fields $fields:ident $key:tt : [ $($items:tt)* ] $(, $($rest:tt)*)?) => {
        $fields.push(($crate::Str::from($key), $crate::doc!([ $($items)* ])));
        $crate::doc!(@fields $fields $($($rest)*)?);
    };
    (@fields $fields:ident $key:tt : { $($body:tt)* } $(, $($rest:tt)*)?) => {
        $fields.push(($crate::Str::from($key), $crate::doc!({ $($body)* })));
        $crate::doc!(@fields $fields $($($rest)*)?);
    };
    (@fields $fields:ident $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $fields.push(($crate::Str::from($key), $crate::Doc::from($value)));
        $crate::doc!(@fields $fields $($($rest)*)?);
    };
    ($value:expr) => { $crate::Doc::from($value) };
}
