//! The wire format: a message is a sequence of numbered values.

use super::ProtobufError;

/// The depth to which groups, which no built-in type uses, may nest while they are skipped.
const GROUPS_LIMIT: usize = 64;
/// The longest form of a number on the wire.
const VARINT_BYTES: usize = 10;

/// One value on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes. No built-in type uses them.
    Fixed32,
    /// Bytes with their length: texts, messages and packed numbers.
    Bytes(&'a [u8]),
    /// A group that was skipped.
    Group,
}

impl<'a> Value<'a> {
    fn name(&self) -> &'static str {
        match self {
            Value::Varint(_) => "a varint",
            Value::Fixed64(_) => "a fixed64",
            Value::Fixed32 => "a fixed32",
            Value::Bytes(_) => "length-delimited",
            Value::Group => "a group",
        }
    }

    fn wrong(&self, wanted: &str) -> ProtobufError {
        ProtobufError::corrupt(format!(
            "wrong wire type, want {wanted}, got {}",
            self.name()
        ))
    }

    pub(super) fn varint(self) -> Result<u64, ProtobufError> {
        match self {
            Value::Varint(value) => Ok(value),
            _ => Err(self.wrong("a varint")),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, ProtobufError> {
        match self {
            Value::Fixed64(value) => Ok(value),
            _ => Err(self.wrong("a fixed64")),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong("length-delimited")),
        }
    }
}

/// Reads the values of one message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns true if everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes that were not read yet.
    pub(super) fn rest(&self) -> usize {
        self.rest.len()
    }

    /// The next field number and its value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, ProtobufError> {
        if self.is_at_end() {
            return Ok(None);
        }
        let (number, wire) = self.tag()?;
        if wire == 4 {
            return Err(ProtobufError::corrupt("end of a group that did not start"));
        }
        Ok(Some((number, self.value(wire, GROUPS_LIMIT)?)))
    }

    fn tag(&mut self) -> Result<(u32, u8), ProtobufError> {
        let tag = self.varint()?;
        // Upstream keeps only the low 32 bits of a number and takes what then is not positive for
        // corrupt.
        let number = u32::try_from((tag >> 3) & 0xffff_ffff).unwrap_or(0);
        if number == 0 || number > u32::MAX / 2 {
            return Err(ProtobufError::corrupt(format!("illegal tag {number}")));
        }
        Ok((number, (tag & 7) as u8))
    }

    fn value(&mut self, wire: u8, groups: usize) -> Result<Value<'a>, ProtobufError> {
        match wire {
            0 => self.varint().map(Value::Varint),
            1 => {
                let bytes = self.take(8)?;
                let bytes = bytes.try_into().expect("invariant: eight bytes were taken");
                Ok(Value::Fixed64(u64::from_le_bytes(bytes)))
            }
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| unexpected_end())?;
                self.take(length).map(Value::Bytes)
            }
            3 => self.skip_group(groups).map(|()| Value::Group),
            5 => self.take(4).map(|_| Value::Fixed32),
            _ => Err(ProtobufError::corrupt(format!("illegal wire type {wire}"))),
        }
    }

    fn skip_group(&mut self, groups: usize) -> Result<(), ProtobufError> {
        let groups = groups
            .checked_sub(1)
            .ok_or_else(|| ProtobufError::corrupt("groups are nested too deep"))?;
        loop {
            let (_, wire) = self.tag()?;
            if wire == 4 {
                return Ok(());
            }
            self.value(wire, groups)?;
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(VARINT_BYTES).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < VARINT_BYTES {
            unexpected_end()
        } else {
            ProtobufError::corrupt("integer overflow")
        })
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, ProtobufError> {
        self.value(1, 0)?.fixed64()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(unexpected_end)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn unexpected_end() -> ProtobufError {
    ProtobufError::corrupt("unexpected EOF")
}
