//! The two sources of random numbers.

/// The number of words taken from the operating system at once, to spread the cost of asking.
const BUFFER_WORDS: usize = 32;

/// A source of random words.
pub(super) enum Random {
    /// The operating system's generator, which is fit for secrets. The buffer holds words that
    /// were not handed out yet.
    System { buffer: Vec<u64> },
    /// SplitMix64 by Steele, Lea and Flood: tiny, well studied, and the same on every machine and
    /// in every release, which a seed in a bug report needs. It is not fit for secrets.
    Seeded { state: u64 },
}

impl Random {
    pub(super) fn system() -> Self {
        Self::System {
            buffer: Vec::with_capacity(BUFFER_WORDS),
        }
    }

    pub(super) fn seeded(seed: u64) -> Self {
        Self::Seeded { state: seed }
    }

    pub(super) fn next_u64(&mut self) -> u64 {
        match self {
            Self::System { buffer } => buffer.pop().unwrap_or_else(|| {
                refill(buffer);
                buffer.pop().expect("invariant: the buffer was just filled")
            }),
            Self::Seeded { state } => split_mix(state),
        }
    }

    /// A number below `bound`, zero when there is none. Words from the incomplete last run of
    /// `bound` numbers are thrown away, because they would make the small numbers likelier.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let surplus = (u64::MAX % bound + 1) % bound;
        loop {
            let word = self.next_u64();
            if word <= u64::MAX - surplus {
                return word % bound;
            }
        }
    }

    /// A number from zero up to but not including one, with the 53 bits that such a number has.
    pub(super) fn fraction(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        #[expect(
            clippy::cast_precision_loss,
            reason = "both numbers have at most 53 bits"
        )]
        let fraction = (self.next_u64() >> 11) as f64 / STEPS as f64;
        fraction
    }

    pub(super) fn pick(&mut self, from: &[u8]) -> u8 {
        let at = self.below(from.len() as u64);
        usize::try_from(at)
            .ok()
            .and_then(|at| from.get(at))
            .copied()
            .unwrap_or_default()
    }
}

fn refill(buffer: &mut Vec<u64>) {
    let mut bytes = [0; BUFFER_WORDS * 8];
    getrandom::fill(&mut bytes).expect("invariant: the operating system has randomness");
    let words = bytes.chunks_exact(8);
    buffer.extend(words.map(|word| {
        u64::from_le_bytes(
            word.try_into()
                .expect("invariant: the chunk has eight bytes"),
        )
    }));
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
