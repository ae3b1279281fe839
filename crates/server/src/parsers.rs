//! Parsers for request bodies, shared by all requests.

use parking_lot::Mutex;
use windlass_core::{Duplicates, ParseError, ParseOptions, Parsed, Parser};

/// How deep a request body may nest.
const DEPTH_LIMIT: usize = 256;
/// Parsers that are kept: as many requests as are parsed at the same time on a large machine.
const KEPT_LIMIT: usize = 64;

/// Parsers that remember the shapes of the bodies they met. Most bodies are like one before.
#[derive(Debug, Default)]
pub(crate) struct Parsers {
    /// Those that are not at work; at most [`KEPT_LIMIT`].
    idle: Mutex<Vec<Parser>>,
}

impl Parsers {
    /// Parses one JSON body; keys that come twice are listed, and the last one counts.
    pub(crate) fn parse(&self, body: &[u8]) -> Result<Parsed, ParseError> {
        let idle = self.idle.lock().pop();
        let mut parser = idle.unwrap_or_else(|| {
            Parser::new(ParseOptions {
                depth_limit: DEPTH_LIMIT,
                duplicates: Duplicates::KeepLast,
                ..ParseOptions::default()
            })
        });
        let parsed = parser.parse(body);
        let mut idle = self.idle.lock();
        if idle.len() < KEPT_LIMIT {
            idle.push(parser);
        }
        parsed
    }
}
