//! Types with a form of their own: times, quantities, JSON inside protobuf, and scalars.

use std::borrow::Cow;

use windlass_core::{DEPTH_LIMIT, Doc, Duplicates, MicroTime, ParseOptions, Quantity, Time};

use super::ProtobufError;
use super::wire::Reader;

/// A text as JSON can hold it: each byte that is not UTF-8 becomes a replacement character, as
/// Go's encoder does it.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(out)
}

/// A float as Go writes it: whole numbers have no fraction.
pub(super) fn double(value: f64) -> Result<Doc, ProtobufError> {
    /// From here on the distance between floats is more than one, and Go's form has an exponent
    /// or digits that read back as a float.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        return Err(ProtobufError::corrupt(format!("unsupported value {value}")));
    }
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    if value.fract() == 0.0 && value.abs() <= WHOLE && !is_negative_zero {
        return Ok(Doc::from(value as i64));
    }
    Ok(Doc::from(value))
}

/// Seconds and nanoseconds since 1970.
fn timestamp(bytes: &[u8]) -> Result<(i64, i32), ProtobufError> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        match number {
            1 => seconds = value.varint()?.cast_signed(),
            2 => nanos = int32(value.varint()?),
            _ => {}
        }
    }
    Ok((seconds, nanos))
}

/// A number of 32 bits: upstream cuts longer ones.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is the number"
)]
pub(super) fn int32(value: u64) -> i32 {
    value as i32
}

pub(super) fn time(bytes: &[u8]) -> Result<Doc, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Doc::NULL);
    }
    let (seconds, _) = timestamp(bytes)?;
    let time = Time::from_unix(seconds);
    if time.unix() != seconds {
        return Err(out_of_range(seconds));
    }
    Ok(if time.is_unset() {
        Doc::NULL
    } else {
        time.to_string().into()
    })
}

pub(super) fn micro_time(bytes: &[u8]) -> Result<Doc, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Doc::NULL);
    }
    let (seconds, nanos) = timestamp(bytes)?;
    let micros = seconds
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(i64::from(nanos / 1_000)))
        .ok_or_else(|| out_of_range(seconds))?;
    let time = MicroTime::from_unix_micros(micros);
    if time.unix_micros() != micros {
        return Err(out_of_range(seconds));
    }
    Ok(if time.is_unset() {
        Doc::NULL
    } else {
        time.to_string().into()
    })
}

fn out_of_range(seconds: i64) -> ProtobufError {
    ProtobufError::corrupt(format!("{seconds} is not a time of the years 0 to 9999"))
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Doc, ProtobufError> {
    let mut found = Quantity::ZERO;
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if number == 1 {
            let text = text(value.bytes()?);
            found = text
                .parse()
                .map_err(|error| ProtobufError::corrupt(format!("{error}")))?;
        }
    }
    Ok(found.to_string().into())
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Doc, ProtobufError> {
    let (mut kind, mut number, mut string) = (0, 0, Cow::Borrowed(""));
    let mut reader = Reader::new(bytes);
    while let Some((field, value)) = reader.next()? {
        match field {
            1 => kind = value.varint()?,
            2 => number = int32(value.varint()?),
            3 => string = text(value.bytes()?),
            _ => {}
        }
    }
    match kind {
        0 => Ok(number.into()),
        1 => Ok(Doc::from(&*string)),
        _ => Err(ProtobufError::corrupt("impossible IntOrString.Type")),
    }
}

/// The bytes that a message carries as its first field.
pub(super) fn raw(bytes: &[u8]) -> Result<&[u8], ProtobufError> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if number == 1 {
            raw = value.bytes()?;
        }
    }
    Ok(raw)
}

/// JSON that protobuf carries as bytes, at some depth of the document.
pub(super) fn json(bytes: &[u8], depth: usize) -> Result<Doc, ProtobufError> {
    let raw = raw(bytes)?;
    if raw.is_empty() {
        return Ok(Doc::NULL);
    }
    let options = ParseOptions {
        depth_limit: DEPTH_LIMIT.saturating_sub(depth),
        duplicates: Duplicates::KeepLast,
        ..ParseOptions::default()
    };
    Doc::parse_with(raw, &options).map_err(|error| ProtobufError::corrupt(format!("{error}")))
}
