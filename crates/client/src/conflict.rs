//! Retries after a conflict.

use std::future::Future;
use std::time::Duration;

use windlass_core::Env;

use crate::Error;

/// The number of attempts of [`retry_on_conflict`], as in client-go.
pub const CONFLICT_ATTEMPTS: u32 = 5;

/// The wait between two attempts, lengthened by up to a tenth.
const WAIT: Duration = Duration::from_millis(10);
const JITTER: f64 = 0.1;

/// Repeats a read and a write for as long as the write meets a conflict.
///
/// The attempt must read the object anew each time.
///
/// # Errors
/// The error of the last attempt.
pub async fn retry_on_conflict<T, F>(env: &Env, mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 1..CONFLICT_ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_conflict() => {}
            outcome => return outcome,
        }
        tokio::time::sleep(env.jitter(WAIT, JITTER)).await;
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    fn conflict() -> Error {
        Error::status_answer("PUT /x", Status::failure(409, "Conflict", "changed"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_tried_again_until_it_is_gone() {
        let (env, mut left) = (Env::seeded(1), 3);
        let outcome = retry_on_conflict(&env, || {
            left -= 1;
            let outcome = if left == 0 {
                Ok("done")
            } else {
                Err(conflict())
            };
            async move { outcome }
        });
        assert_eq!(outcome.await.unwrap(), "done");
    }

    #[tokio::test(start_paused = true)]
    async fn the_fifth_conflict_is_returned() {
        let (env, mut attempts) = (Env::seeded(1), 0);
        let outcome = retry_on_conflict(&env, || {
            attempts += 1;
            async { Err::<(), _>(conflict()) }
        });
        assert!(outcome.await.unwrap_err().is_conflict());
        assert_eq!(attempts, CONFLICT_ATTEMPTS);
    }
}
