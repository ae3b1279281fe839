//! The error of a reconcile: opaque, with a verdict on the retry.

use std::{error::Error as StdError, fmt, time::Duration};

/// The result of a reconcile, and of everything called inside one.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure of a reconcile. It comes from any error by `?`, and says what happens to the key:
/// by default it is tried again with back-off.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_runtime::{Error, Result};
/// fn port(text: &str) -> Result<u16> {
///     // Trying again will not make it a number; a change of the object may.
///     text.parse().map_err(|error| Error::from(error).terminal())
/// }
///
/// fn quota(is_exhausted: bool) -> Result<()> {
///     match is_exhausted {
///         true => Err(Error::msg("the quota is exhausted").after(Duration::from_secs(60))),
///         false => Ok(()),
///     }
/// }
/// # assert!(port("x").is_err() && quota(true).is_err());
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    source: Box<dyn StdError + Send + Sync>,
    /// The steps that were being done, the innermost first.
    context: Vec<String>,
    retry: Retry,
}

/// The next step for a key whose reconcile failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It is tried again after the delay that the rate limiter chooses.
    Backoff,
    /// It is tried again after this time, whatever the limiter says.
    After(Duration),
    /// It is not tried again before something changes.
    Never,
}

impl Error {
    /// A failure in words.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::boxed(message.to_string().into())
    }

    pub(crate) fn boxed(source: Box<dyn StdError + Send + Sync>) -> Self {
        let (context, retry) = (Vec::new(), Retry::Backoff);
        Self(Box::new(Inner {
            source,
            context,
            retry,
        }))
    }

    /// Trying again is in vain until something changes.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.0.retry = Retry::Never;
        self
    }

    /// Tries again after this time, in place of the back-off.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.0.retry = Retry::After(delay);
        self
    }

    /// Says what was being done. The verdict on the retry stays.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.0.context.push(what.to_string());
        self
    }

    /// The next step for the key.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// Returns true if the key is not tried again.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.0.retry == Retry::Never
    }

    /// The error this was made from, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.source.downcast_ref()
    }
}

// This type does not implement `std::error::Error` itself: only so can it come from any that does.
impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(source: E) -> Self {
        Self::boxed(Box::new(source))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for what in self.0.context.iter().rev() {
            write!(f, "{what}: ")?;
        }
        let mut shown = self.0.source.to_string();
        f.write_str(&shown)?;
        let mut next = self.0.source.source();
        while let Some(source) = next {
            let text = source.to_string();
            // Many errors repeat what is behind them in their own text.
            if !shown.contains(&text) {
                write!(f, ": {text}")?;
                shown = text;
            }
            next = source.source();
        }
        Ok(())
    }
}

/// The same as `Display`: it is what a `main` that returns this error prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_read_from_the_outside_in_and_keeps_the_verdict() {
        let error = Error::from(std::io::Error::other("disk is full")).terminal();
        let error = error.context("cannot write status").context("default/web");
        assert_eq!(
            error.to_string(),
            "default/web: cannot write status: disk is full"
        );
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(error.is_terminal());
        assert!(error.downcast_ref::<std::io::Error>().is_some());
    }

    #[test]
    fn a_plain_error_is_retried_with_back_off() {
        assert_eq!(Error::msg("no").retry(), Retry::Backoff);
        let delay = Duration::from_secs(3);
        assert_eq!(Error::msg("no").after(delay).retry(), Retry::After(delay));
    }
}
