//! A fair queue: requests of many flows in a few queues, served so that each flow gets its share.
//!
//! Start-time fair queuing: a queue has a virtual time at which its next request starts, and the
//! queue whose time is least is served next. A request moves that time by the work it is estimated
//! to cost, and the difference to the work it did cost follows when it ends. A queue that was empty
//! starts at the present virtual time: nobody saves up shares.

use std::collections::VecDeque;

/// Seat nanoseconds that a request is estimated to cost for each of its seats, upstream's 3 ms.
const ESTIMATED_NANOS: u64 = 3_000_000;

/// Queues of items that wait.
#[derive(Debug)]
pub(super) struct FairQueues<T> {
    queues: Vec<Queue<T>>,
    /// The virtual time.
    now: u64,
    len: usize,
    next_id: u64,
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<QueueItem<T>>,
    /// The virtual time at which the next item starts.
    start: u64,
    /// Seats that the items want.
    seats: usize,
}

#[derive(Debug)]
struct QueueItem<T> {
    id: u64,
    width: usize,
    item: T,
}

/// The position of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) queue: usize,
    id: u64,
}

impl<T> FairQueues<T> {
    pub(super) fn new(queues: usize) -> Self {
        let queue = || Queue {
            items: VecDeque::new(),
            start: 0,
            seats: 0,
        };
        Self {
            queues: std::iter::repeat_with(queue).take(queues).collect(),
            now: 0,
            len: 0,
            next_id: 0,
        }
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts an item into the queue of a hand in which the fewest seats are waited for. `None` if
    /// that one is full.
    pub(super) fn push(
        &mut self,
        hand: &[usize],
        limit: usize,
        width: usize,
        item: T,
    ) -> Option<Position> {
        let &at = hand.iter().min_by_key(|&&at| self.queues[at].seats)?;
        let queue = &mut self.queues[at];
        if queue.items.len() >= limit {
            return None;
        }
        if queue.items.is_empty() {
            queue.start = queue.start.max(self.now);
        }
        let id = self.next_id;
        self.next_id += 1;
        queue.items.push_back(QueueItem { id, width, item });
        queue.seats += width;
        self.len += 1;
        Some(Position { queue: at, id })
    }

    /// The queue that is served next, and the seats that its first item wants.
    pub(super) fn head(&self) -> Option<(usize, usize)> {
        if self.len == 0 {
            return None;
        }
        let waiting = self.queues.iter().enumerate();
        let heads = waiting.filter_map(|(at, queue)| Some((queue.start, at, queue.items.front()?)));
        let next = heads.min_by_key(|(start, at, _)| (*start, *at));
        next.map(|(_, at, item)| (at, item.width))
    }

    /// Takes the first item of a queue.
    pub(super) fn pop(&mut self, at: usize) -> Option<T> {
        let queue = &mut self.queues[at];
        let first = queue.items.pop_front()?;
        queue.seats -= first.width;
        self.len -= 1;
        self.now = self.now.max(queue.start);
        queue.start = queue.start.saturating_add(estimate(first.width));
        Some(first.item)
    }

    /// Takes an item out; `None` if it is not there any more.
    pub(super) fn remove(&mut self, position: Position) -> Option<T> {
        let queue = &mut self.queues[position.queue];
        let at = queue.items.iter().position(|item| item.id == position.id)?;
        let removed = queue.items.remove(at)?;
        queue.seats -= removed.width;
        self.len -= 1;
        Some(removed.item)
    }

    /// Corrects the estimate for an item by the time for which it held its seats.
    pub(super) fn settle(&mut self, at: usize, width: usize, nanos: u64) {
        let queue = &mut self.queues[at];
        let cost = nanos.saturating_mul(width as u64);
        let estimated = estimate(width);
        queue.start = queue.start.saturating_add(cost).saturating_sub(estimated);
    }
}

fn estimate(width: usize) -> u64 {
    ESTIMATED_NANOS.saturating_mul(width as u64)
}

/// The queues that a flow may use: a hand of different cards from a deck of all queues, chosen by a
/// hash of the flow. Two flows have few of them in common, and seldom all.
pub(super) fn deal(mut hash: u64, queues: usize, hand: usize) -> Vec<usize> {
    let mut cards: Vec<usize> = Vec::with_capacity(hand);
    let mut sorted: Vec<usize> = Vec::with_capacity(hand);
    for dealt in 0..hand.min(queues) {
        let left = (queues - dealt) as u64;
        let (mut card, rest) = ((hash % left) as usize, hash / left);
        hash = rest;
        // The card counts among those left: step over the ones dealt before it.
        let mut at = 0;
        while at < sorted.len() && sorted[at] <= card {
            card += 1;
            at += 1;
        }
        sorted.insert(at, card);
        cards.push(card);
    }
    cards
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_hand_has_no_card_twice() {
        let mut seen = BTreeSet::new();
        for number in 0..1000_u64 {
            let hand = deal(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), 64, 6);
            let cards: BTreeSet<usize> = hand.iter().copied().collect();
            assert_eq!(cards.len(), 6, "{hand:?}");
            assert!(cards.iter().all(|card| *card < 64));
            seen.extend(cards);
        }
        assert_eq!(seen.len(), 64, "every queue is used");
        assert_eq!(deal(5, 3, 10).len(), 3);
    }

    #[test]
    fn a_long_queue_does_not_delay_a_short_one() {
        let mut queues = FairQueues::new(4);
        for _ in 0..40 {
            queues.push(&[0], 50, 1, "flood").unwrap();
        }
        let serve = |queues: &mut FairQueues<_>| {
            let (at, _) = queues.head().unwrap();
            queues.pop(at).unwrap()
        };
        for _ in 0..10 {
            assert_eq!(serve(&mut queues), "flood");
        }
        queues.push(&[1], 50, 1, "other").unwrap();
        let next: Vec<&str> = (0..2).map(|_| serve(&mut queues)).collect();
        assert!(next.contains(&"other"), "{next:?}");
    }

    #[test]
    fn a_queue_whose_requests_take_longer_is_served_less_often() {
        let mut queues = FairQueues::new(2);
        for _ in 0..40 {
            queues.push(&[0], 50, 1, "slow").unwrap();
            queues.push(&[1], 50, 1, "quick").unwrap();
        }
        let mut quick = 0;
        for _ in 0..22 {
            let (at, width) = queues.head().unwrap();
            let is_quick = queues.pop(at) == Some("quick");
            quick += usize::from(is_quick);
            queues.settle(at, width, if is_quick { 1_000_000 } else { 10_000_000 });
        }
        assert!((18..=21).contains(&quick), "{quick} of 22");
    }

    #[test]
    fn a_full_queue_takes_no_more_and_removed_items_are_gone() {
        let mut queues = FairQueues::new(2);
        let first = queues.push(&[0], 2, 3, 'a').unwrap();
        queues.push(&[0, 1], 2, 1, 'b').unwrap();
        assert_eq!(queues.queues[1].seats, 1, "the emptier queue of the hand");
        queues.push(&[0], 2, 1, 'c').unwrap();
        assert_eq!(queues.push(&[0], 2, 1, 'd'), None);
        assert_eq!(queues.remove(first), Some('a'));
        assert_eq!(queues.remove(first), None);
        assert_eq!(queues.len(), 2);
    }
}
