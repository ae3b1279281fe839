//! Ranges of costs and sizes.

/// What an evaluation costs at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CostEstimate {
    /// At least.
    pub min: u64,
    /// At most; `u64::MAX` if there is no bound.
    pub max: u64,
}

/// How large a value is at least and at most.
pub(super) type Size = CostEstimate;

impl CostEstimate {
    pub(super) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(super) const fn fixed(value: u64) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Both bounds times a factor, rounded up.
    pub(super) fn scaled(self, factor: f64) -> Self {
        let scale = |value: u64| {
            let product = value as f64 * factor;
            if product >= u64::MAX as f64 {
                u64::MAX
            } else {
                product.ceil() as u64
            }
        };
        Self {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    /// The range that covers both.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}
