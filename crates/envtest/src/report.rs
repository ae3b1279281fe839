//! Errors as one line.

use std::{error::Error, iter};

/// The error and all its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
