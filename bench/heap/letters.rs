// SPDX-License-Identifier: MIT OR Apache-2.0
//! letters DOCUMENTS: what programs do with memory, in two threads: documents as trees are made up, written
//! out, split into words and counted, and hashed; some are kept and never freed.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

enum Node {
    Text(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn grow(dice: &mut Dice, depth: u32) -> Node {
    match if depth == 0 { 0 } else { dice.roll(5) } {
        0 | 1 => Node::Text(format!("word{} of{}", dice.roll(700), dice.roll(90))),
        2 => Node::List((0..3 + dice.roll(3)).map(|_| grow(dice, depth - 1)).collect()),
        _ => Node::Table((0..4).map(|_| (format!("key{}", dice.roll(50)), grow(dice, depth - 1))).collect()),
    }
}

fn write_out(node: &Node, to: &mut String) {
    match node {
        Node::Text(t) => to.push_str(t),
        Node::List(l) => l.iter().for_each(|n| {
            write_out(n, to);
            to.push(' ');
        }),
        Node::Table(t) => t.iter().for_each(|(k, n)| {
            write!(to, "{k}: ").unwrap();
            write_out(n, to);
            to.push('\n');
        }),
    }
}

fn hash(text: &str) -> u64 {
    // as much work on the bytes as a program does that reads them for something
    (0..30u64).fold(0, |h, _| text.bytes().fold(h, |h, b| h.wrapping_mul(31).wrapping_add(b as u64)))
}

fn work(seed: u64, documents: u32) -> u64 {
    let mut dice = Dice(seed);
    let mut count: HashMap<String, u64> = HashMap::new();
    let mut kept = Vec::new();
    let mut sum = 0u64;
    for i in 0..documents {
        let tree = Node::List((0..3).map(|_| grow(&mut dice, 5)).collect());
        let mut text = String::new();
        write_out(&tree, &mut text);
        for word in text.split_whitespace() {
            *count.entry(word.to_string()).or_insert(0) += 1;
        }
        sum = sum.wrapping_add(hash(&text));
        if i % 64 == 0 {
            kept.push(tree);
        }
    }
    std::mem::forget(kept);
    sum.wrapping_add(count.len() as u64)
}

fn main() {
    let documents = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2000);
    let threads: Vec<_> = (1..3).map(|i| std::thread::spawn(move || work(i * 77, documents))).collect();
    let sum = threads.into_iter().fold(0u64, |s, t| s.wrapping_add(t.join().unwrap()));
    println!("{sum}");
}
