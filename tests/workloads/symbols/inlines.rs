/* SPDX-License-Identifier: GPL-2.0-or-later */
//! inlines MS - burns CPU for MS milliseconds in functions that are inlined into each other:
//! generic ones, closures, iterators of the standard library. Compiled by the tests.
use std::time::{Duration, Instant};

trait Mixer {
    fn mix(&mut self, value: u64);
}

struct Digest(u64);

impl Mixer for Digest {
    #[inline(always)]
    fn mix(&mut self, value: u64) {
        let x = self.0.wrapping_add(value);
        self.0 = (x ^ (x >> 13)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[inline(always)]
fn add_all<M: Mixer>(mixer: &mut M, values: &[u64]) {
    values.iter().filter(|v| **v != 7).for_each(|v| mixer.mix(*v));
}

mod burning {
    use super::{add_all, Digest};

    #[inline(never)]
    pub fn burn_inlined(values: &[u64]) -> u64 {
        let mut digest = Digest(1);
        add_all(&mut digest, values);
        digest.0
    }
}

fn main() {
    let ms = std::env::args().nth(1).map_or(100, |a| a.parse().unwrap());
    let values = vec![3; 8000];
    let (begin, mut sum) = (Instant::now(), 0u64);
    while begin.elapsed() < Duration::from_millis(ms) {
        sum = sum.wrapping_add(burning::burn_inlined(std::hint::black_box(&values)));
    }
    std::process::exit((sum == 1) as i32);
}
