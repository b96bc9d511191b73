// SPDX-License-Identifier: MIT OR Apache-2.0
//! wordex: makes a text, indexes its words on two threads, ranks them and answers queries.
//!
//! The program that `./start` profiles when none is given: ordinary Rust, only the standard
//! library, optimised, with the usual suspects in it: hashing, allocation, sorting, recursion.

mod corpus;
mod index;
mod query;
mod tokenize;

use index::Index;
use std::thread;

const DOCUMENTS: usize = 6_000;
const WORDS_PER_DOCUMENT: usize = 700;
const ROUNDS: usize = 4;

/// Indexes one part of the documents; the body of a thread.
fn index_part(documents: &[String], first_id: u32) -> Index {
    let mut index = Index::default();
    for (i, text) in documents.iter().enumerate() {
        for token in tokenize::tokens(text) {
            index.add(&token, first_id + i as u32);
        }
    }
    index
}

fn build(documents: &[String]) -> Index {
    let middle = documents.len() / 2;
    let (left, right) = documents.split_at(middle);
    let (mut a, b) = thread::scope(|scope| {
        let spawn = |name: &str, part, first| {
            thread::Builder::new()
                .name(name.into())
                .spawn_scoped(scope, move || index_part(part, first))
                .expect("cannot start a thread")
        };
        let a = spawn("indexer-1", left, 0);
        let b = spawn("indexer-2", right, middle as u32);
        (a.join().unwrap(), b.join().unwrap())
    });
    a.merge(b);
    a
}

fn main() {
    let rounds = match std::env::args().nth(1).map(|text| text.parse()) {
        None => ROUNDS,
        Some(Ok(rounds)) => rounds,
        Some(Err(_)) => {
            eprintln!("usage: wordex [ROUNDS]");
            std::process::exit(2);
        }
    };
    let mut checksum = 0;
    for round in 0..rounds {
        let documents = corpus::generate(DOCUMENTS, WORDS_PER_DOCUMENT, round as u64 + 1);
        let index = build(&documents);
        let ranked = index.ranked();
        if round == 0 {
            println!("{} documents, {} words", documents.len(), ranked.len());
            for (word, count) in ranked.iter().take(3) {
                println!("{word:>14} {count}");
            }
        }
        checksum ^= query::answer_all(&index, &ranked);
    }
    println!("checksum {checksum:016x}");
}
