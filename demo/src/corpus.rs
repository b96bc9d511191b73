// SPDX-License-Identifier: MIT OR Apache-2.0
//! A text nobody has to ship: words of syllables, drawn so that few are frequent and many are rare.

const SYLLABLES: [&str; 24] = [
    "ka", "ro", "mi", "ten", "sol", "va", "ler", "pu", "din", "os", "gra", "eth", "lu", "ner", "qui",
    "ba", "tor", "is", "fen", "ma", "cho", "ulb", "rey", "zan",
];
const VOCABULARY: u64 = 40_000;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn push_word(text: &mut String, mut number: u64, capital: bool) {
    let start = text.len();
    loop {
        text.push_str(SYLLABLES[(number % 24) as usize]);
        number /= 24;
        if number == 0 {
            break;
        }
    }
    if capital {
        text[start..start + 1].make_ascii_uppercase();
    }
}

fn document(random: &mut Random, words: usize) -> String {
    let mut text = String::new();
    let mut sentence_start = true;
    for _ in 0..words {
        // A power of a uniform number: the low numbered words come up far more often.
        let number = (random.unit().powi(4) * VOCABULARY as f64) as u64;
        push_word(&mut text, number, sentence_start);
        sentence_start = random.next() % 11 == 0;
        text.push_str(if sentence_start { ". " } else { " " });
    }
    text
}

pub fn generate(documents: usize, words: usize, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    (0..documents).map(|_| document(&mut random, words)).collect()
}
