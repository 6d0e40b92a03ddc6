// SPDX-License-Identifier: GPL-2.0-or-later
// Rust: generic functions, closures, traits, inlined calls.
use std::collections::BTreeMap;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> f64 {
        helper(self.0) * self.0
    }
}

#[inline]
fn helper(x: f64) -> f64 {
    if x > 1e6 {
        panic!("too large: {x}");
    }
    x.abs().sqrt() * x
}

mod inner {
    #[inline(never)]
    pub fn count<T: Ord + Clone>(items: &[T]) -> usize {
        let mut map = super::BTreeMap::new();
        for item in items {
            *map.entry(item.clone()).or_insert(0usize) += 1;
        }
        map.values().filter(|n| **n > 1).map(|n| n * 2).sum()
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(words.len() as f64))];
    let total: f64 = shapes.iter().map(|s| s.area()).sum();
    println!("{} {}", total, inner::count(&words));
}
