/* SPDX-License-Identifier: GPL-2.0-or-later */
//! Does what places.c does, in Rust.
use std::io::{self, BufRead, Write};
use std::time::Duration;

#[inline(never)]
fn read_config() -> usize {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).unwrap() + 1
}

#[inline(never)]
fn read_reply() -> usize {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).unwrap() + 2
}

#[inline(never)]
fn write_config(pause: Duration) -> usize {
    std::thread::sleep(pause);
    writeln!(io::stdout(), "config").unwrap();
    1
}

#[inline(never)]
fn write_reply(pause: Duration) -> usize {
    std::thread::sleep(pause);
    writeln!(io::stdout(), "reply").unwrap();
    2
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let pause = Duration::from_millis(arguments[2].parse().unwrap());
    let done = if arguments[1] == "read" {
        read_config() + read_reply()
    } else {
        write_config(pause) + write_reply(pause)
    };
    std::process::exit((done < 3) as i32);
}
