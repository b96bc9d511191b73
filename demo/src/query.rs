// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queries are trees of AND and OR over words, evaluated by recursion.

use crate::corpus::Random;
use crate::index::{Index, Posting};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

pub enum Query<'a> {
    Word(&'a str),
    And(Box<Query<'a>>, Box<Query<'a>>),
    Or(Box<Query<'a>>, Box<Query<'a>>),
}

fn random_query<'a>(random: &mut Random, words: &[(&'a str, u64)], depth: u32) -> Query<'a> {
    if depth == 0 {
        let at = (random.unit() * random.unit() * words.len() as f64) as usize;
        return Query::Word(words[at].0);
    }
    let left = Box::new(random_query(random, words, depth - 1));
    let right = Box::new(random_query(random, words, depth - 1));
    if random.next() % 3 == 0 {
        Query::And(left, right)
    } else {
        Query::Or(left, right)
    }
}

/// Both lists ascend by document; `both` keeps only documents that are in each.
fn combine(a: &[Posting], b: &[Posting], both: bool) -> Vec<Posting> {
    let mut out = Vec::new();
    let (mut i, mut k) = (0, 0);
    while i < a.len() && k < b.len() {
        if a[i].document == b[k].document {
            out.push(Posting { document: a[i].document, count: a[i].count + b[k].count });
            i += 1;
            k += 1;
        } else if a[i].document < b[k].document {
            if !both {
                out.push(a[i]);
            }
            i += 1;
        } else {
            if !both {
                out.push(b[k]);
            }
            k += 1;
        }
    }
    if !both {
        out.extend_from_slice(&a[i..]);
        out.extend_from_slice(&b[k..]);
    }
    out
}

fn evaluate(query: &Query, index: &Index) -> Vec<Posting> {
    match query {
        Query::Word(word) => index.postings(word).to_vec(),
        Query::And(a, b) => combine(&evaluate(a, index), &evaluate(b, index), true),
        Query::Or(a, b) => combine(&evaluate(a, index), &evaluate(b, index), false),
    }
}

/// The best ten of each of many random queries, folded into one number.
pub fn answer_all(index: &Index, ranked: &[(&str, u64)]) -> u64 {
    let mut random = Random(7);
    let mut hasher = DefaultHasher::new();
    for _ in 0..900 {
        let query = random_query(&mut random, ranked, 6);
        let mut hits = evaluate(&query, index);
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.count), hit.document));
        for hit in hits.iter().take(10) {
            (hit.document, hit.count).hash(&mut hasher);
        }
    }
    hasher.finish()
}
