// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which word is in which documents, and how often.

use std::collections::HashMap;

#[derive(Clone, Copy)]
pub struct Posting {
    pub document: u32,
    pub count: u32,
}

#[derive(Default)]
pub struct Index {
    words: HashMap<String, Vec<Posting>>,
}

impl Index {
    pub fn add(&mut self, word: &str, document: u32) {
        let postings = match self.words.get_mut(word) {
            Some(postings) => postings,
            None => self.words.entry(word.to_string()).or_default(),
        };
        match postings.last_mut() {
            Some(last) if last.document == document => last.count += 1,
            _ => postings.push(Posting { document, count: 1 }),
        }
    }

    /// The documents of `other` come after ours.
    pub fn merge(&mut self, other: Index) {
        for (word, postings) in other.words {
            self.words.entry(word).or_default().extend(postings);
        }
    }

    pub fn postings(&self, word: &str) -> &[Posting] {
        self.words.get(word).map_or(&[], Vec::as_slice)
    }

    /// All words with their number of uses, the most used first.
    pub fn ranked(&self) -> Vec<(&str, u64)> {
        let mut ranked: Vec<(&str, u64)> = self
            .words
            .iter()
            .map(|(word, postings)| {
                (word.as_str(), postings.iter().map(|p| u64::from(p.count)).sum())
            })
            .collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        ranked
    }
}
