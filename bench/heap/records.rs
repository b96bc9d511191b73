// SPDX-License-Identifier: MIT OR Apache-2.0
//! records DOCUMENTS: two threads make trees up by recursion at many places, write them out, read them back, and
//! count their words; some are kept and never freed. Hardly any allocation has a stack that was seen just before:
//! 3,600 documents are 1.4 million allocations below more than 150,000 stacks.
use std::collections::{BTreeMap, HashMap};

#[derive(Clone)]
enum Item {
    Flag(bool),
    Word(String),
    Pair(Box<Item>, Box<Item>),
    Row(Vec<Item>),
    Record(BTreeMap<String, Item>),
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd1342543de82ef95).wrapping_add(0x2545f4914f6cdd1d);
        (self.0 >> 35) % sides
    }
}

/// Each call of itself is a place of its own.
#[inline(never)]
fn invent(dice: &mut Dice, left: u32) -> Item {
    match if left == 0 { dice.roll(2) } else { dice.roll(9) } {
        0 => Item::Flag(dice.roll(2) == 0),
        1 | 2 => Item::Word(format!("w{}", dice.roll(900))),
        3 | 4 => Item::Pair(Box::new(invent(dice, left - 1)), Box::new(invent(dice, left - 1))),
        5 | 6 => {
            let mut row = Vec::new();
            row.push(invent(dice, left - 1));
            row.push(invent(dice, left - 1));
            row.push(invent(dice, left - 1));
            Item::Row(row)
        }
        _ => {
            let mut record = BTreeMap::new();
            record.insert(format!("id{}", dice.roll(99)), invent(dice, left - 1));
            record.insert(format!("to{}", dice.roll(99)), invent(dice, left - 1));
            record.insert(format!("by{}", dice.roll(99)), invent(dice, left - 1));
            Item::Record(record)
        }
    }
}

#[inline(never)]
fn write_out(item: &Item, to: &mut String) {
    match item {
        Item::Flag(f) => to.push_str(&f.to_string()),
        Item::Word(w) => {
            to.push('"');
            to.push_str(w);
            to.push('"');
        }
        Item::Pair(a, b) => {
            to.push('<');
            write_out(a, to);
            to.push(' ');
            write_out(b, to);
            to.push('>');
        }
        Item::Row(row) => {
            to.push('[');
            for one in row {
                write_out(one, to);
                to.push(' ');
            }
            to.push(']');
        }
        Item::Record(record) => {
            to.push('{');
            for (name, one) in record {
                to.push_str(name);
                to.push(':');
                write_out(one, to);
                to.push(' ');
            }
            to.push('}');
        }
    }
}

struct Text<'a> {
    left: &'a str,
}

impl<'a> Text<'a> {
    fn skip(&mut self, what: &str) -> bool {
        let found = self.left.starts_with(what);
        if found {
            self.left = &self.left[what.len()..];
        }
        found
    }
    fn until(&mut self, end: char) -> &'a str {
        let n = self.left.find(end).unwrap();
        let word = &self.left[..n];
        self.left = &self.left[n + 1..];
        word
    }
    #[inline(never)]
    fn read(&mut self) -> Item {
        if self.skip("true") {
            Item::Flag(true)
        } else if self.skip("false") {
            Item::Flag(false)
        } else if self.skip("\"") {
            Item::Word(self.until('"').to_string())
        } else if self.skip("<") {
            let a = Box::new(self.read());
            self.skip(" ");
            let b = Box::new(self.read());
            self.skip(">");
            Item::Pair(a, b)
        } else if self.skip("[") {
            let mut row = Vec::new();
            while !self.skip("]") {
                row.push(self.read());
                self.skip(" ");
            }
            Item::Row(row)
        } else {
            let mut record = BTreeMap::new();
            self.skip("{");
            while !self.skip("}") {
                let name = self.until(':').to_string();
                record.insert(name, self.read());
                self.skip(" ");
            }
            Item::Record(record)
        }
    }
}

fn work(seed: u64, documents: u32) -> usize {
    let mut dice = Dice(seed);
    let mut count: HashMap<String, usize> = HashMap::new();
    let mut kept = Vec::new();
    let mut sum = 0;
    for i in 0..documents {
        let item = invent(&mut dice, 5);
        let mut text = String::new();
        write_out(&item, &mut text);
        let again = Text { left: &text }.read();
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            *count.entry(word.to_string()).or_insert(0) += 1;
        }
        // what a program does with a text once it has it
        sum += text.bytes().cycle().take(text.len() * 20).fold(0u64, |h, b| h.wrapping_mul(33) ^ b as u64) as usize & 7;
        if i % 60 == 0 {
            kept.push(again.clone());
        }
    }
    std::mem::forget(kept);
    sum + count.len()
}

fn main() {
    let documents: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(9000);
    let threads: Vec<_> = (1..3).map(|i| std::thread::spawn(move || work(i * 31, documents / 2))).collect();
    println!("{}", threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>());
}
