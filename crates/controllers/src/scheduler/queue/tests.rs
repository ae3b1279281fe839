//! The queue on its own.
