//! When a CronJob is due, and when next.

use std::time::Duration;

use windlass_core::{Doc, MicroTime, Time};

use super::schedule::Schedule;

/// How much later than the schedule says a CronJob is looked at, so that clocks that differ a
/// little do not make it early.
pub(super) const PADDING: Duration = Duration::from_millis(100);

/// More missed times than this are told of.
pub(super) const MISSED_LIMIT: i64 = 100;

/// A schedule of which no two times are a second apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct InvalidSchedule;

/// The state of a schedule at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// From when on times count.
    earliest: Time,
    /// The last time that has come, if one has.
    pub(super) time: Option<Time>,
    /// The rough number of missed times.
    pub(super) missed: i64,
}

/// Which times of a schedule count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// All since the last one that was acted on.
    All,
    /// Those that are not too old to be acted on.
    Startable,
}

impl Due {
    pub(super) fn of(
        cron_job: &Doc,
        schedule: &Schedule,
        now: MicroTime,
        window: Window,
    ) -> Result<Self, InvalidSchedule> {
        let earliest = earliest(cron_job, now, window);
        let first = schedule.next(earliest).ok_or(InvalidSchedule)?;
        let has_come = |time: Time| MicroTime::from(time) <= now;
        let mut due = Self {
            earliest,
            time: has_come(first).then_some(first),
            missed: 0,
        };
        let Some(second) = schedule.next(first).filter(|second| has_come(*second)) else {
            return Ok(due);
        };
        let between = second.unix() - first.unix();
        if between < 1 {
            return Err(InvalidSchedule);
        }
        // Schedules are not regular: from two times before the last one on they are followed.
        due.missed = (now.to_time().unix() - first.unix()) / between + 1;
        let start = first.unix() + (due.missed - 2) * between;
        let mut at = schedule.next(Time::from_unix(start));
        due.time = None;
        while let Some(time) = at.filter(|time| has_come(*time)) {
            due.time = Some(time);
            at = schedule.next(time);
        }
        Ok(due)
    }
}

fn earliest(cron_job: &Doc, now: MicroTime, window: Window) -> Time {
    let last: Option<Time> = cron_job.str_at("/status/lastScheduleTime").parse().ok();
    let created = cron_job.meta().creation_timestamp();
    let earliest = last.or(created).unwrap_or(Time::UNSET);
    let deadline = cron_job.at("/spec/startingDeadlineSeconds").as_u64();
    match deadline.filter(|_| window == Window::Startable) {
        Some(seconds) => {
            let oldest = now.to_time() - Duration::from_secs(seconds);
            earliest.max(oldest)
        }
        None => earliest,
    }
}

/// The time until the CronJob has to be synced again; `None` if it never has.
pub(super) fn until_next(cron_job: &Doc, schedule: &Schedule, now: MicroTime) -> Option<Duration> {
    let from = match Due::of(cron_job, schedule, now, Window::All) {
        Ok(due) => match due.time {
            Some(time) => time,
            None if due.missed == 0 => due.earliest,
            None => now.to_time(),
        },
        Err(InvalidSchedule) => now.to_time(),
    };
    let next = MicroTime::from(schedule.next(from)?) + PADDING;
    Some(next.since(now))
}
