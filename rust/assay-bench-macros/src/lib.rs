// SPDX-License-Identifier: MIT OR Apache-2.0
//! `#[assay_bench::bench]`. Reads the few tokens it needs of a function's head by itself: a parser of all
//! Rust would take longer to compile than everything else of a bench program.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Registers the function as a benchmark. See the documentation of `assay_bench`.
#[proc_macro_attribute]
pub fn bench(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let made =
        options(attribute).and_then(|o| Ok((head(&item)?, o))).and_then(|(h, o)| make(&h, &o));
    match made {
        Ok(code) => {
            let mut all = item;
            all.extend(code.parse::<TokenStream>().expect("the generated code is Rust"));
            all
        }
        Err(message) => {
            let mut all = item;
            let error = format!("::core::compile_error!({:?});", message);
            all.extend(error.parse::<TokenStream>().expect("an error is Rust"));
            all
        }
    }
}

#[derive(Default)]
struct Options {
    name: Option<String>,
    args: Option<String>,
    generics: Vec<String>, // of consts and types: one for each benchmark
    threads: Option<String>,
    counter: Option<String>,
}

struct Head {
    name: String,
    takes_bencher: bool,
    parameters: usize, // without the bencher
}

/// Splits at commas that are not inside of brackets; `<` and `>` count, `->` does not.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    let mut depth = 0;
    let mut before = ' ';
    for token in tokens {
        let c = match &token {
            TokenTree::Punct(p) => p.as_char(),
            _ => ' ',
        };
        match c {
            '<' => depth += 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(Vec::new());
                before = ' ';
                continue;
            }
            _ => {}
        }
        before = c;
        parts.last_mut().expect("never empty").push(token);
    }
    if parts.last().map_or(false, |p| p.is_empty()) {
        parts.pop();
    }
    parts
}

fn text(tokens: &[TokenTree]) -> String {
    tokens.iter().cloned().collect::<TokenStream>().to_string()
}

fn list(tokens: &[TokenTree], what: &str) -> Result<Vec<String>, String> {
    match tokens {
        [TokenTree::Group(g)] if g.delimiter() == Delimiter::Bracket => {
            Ok(split(g.stream()).iter().map(|part| text(part)).collect())
        }
        _ => Err(format!("assay_bench: {} = [A, B, …] is expected", what)),
    }
}

fn options(attribute: TokenStream) -> Result<Options, String> {
    let mut o = Options::default();
    for part in split(attribute) {
        let key = match part.first() {
            Some(TokenTree::Ident(i)) => i.to_string(),
            _ => return Err("assay_bench: options are written name = value".to_owned()),
        };
        if key == "threads" && part.len() == 1 {
            o.threads = Some("true".to_owned());
            continue;
        }
        let value = match part.get(1) {
            Some(TokenTree::Punct(p)) if p.as_char() == '=' && part.len() > 2 => &part[2..],
            _ => return Err(format!("assay_bench: {} needs a value: {} = …", key, key)),
        };
        match key.as_str() {
            "name" => o.name = Some(text(value)),
            "args" => o.args = Some(text(value)),
            "consts" | "types" => o.generics = list(value, &key)?,
            "threads" => o.threads = Some(text(value)),
            "bytes_count" => {
                o.counter = Some(format!("::assay_bench::BytesCount::new({})", text(value)))
            }
            "chars_count" => {
                o.counter = Some(format!("::assay_bench::CharsCount::new({})", text(value)))
            }
            "items_count" => {
                o.counter = Some(format!("::assay_bench::ItemsCount::new({})", text(value)))
            }
            _ => return Err(format!(
                "assay_bench: unknown option '{}': there are name, args, consts, types, threads, \
                     bytes_count, chars_count, items_count",
                key
            )),
        }
    }
    Ok(o)
}

fn parameters_of(group: &Group) -> (bool, usize) {
    let parts = split(group.stream());
    let is_bencher = |part: &Vec<TokenTree>| {
        part.iter().any(|t| matches!(t, TokenTree::Ident(i) if i.to_string() == "Bencher"))
    };
    let takes = parts.first().map_or(false, is_bencher);
    (takes, parts.len() - takes as usize)
}

fn head(item: &TokenStream) -> Result<Head, String> {
    let mut name = None;
    let mut is_fn = false;
    for token in item.clone() {
        match token {
            TokenTree::Ident(i) if i.to_string() == "fn" => is_fn = true,
            TokenTree::Ident(i) if is_fn && name.is_none() => name = Some(i.to_string()),
            TokenTree::Group(g) if name.is_some() && g.delimiter() == Delimiter::Parenthesis => {
                let (takes_bencher, parameters) = parameters_of(&g);
                let name = name.expect("just seen");
                return Ok(Head { name, takes_bencher, parameters });
            }
            _ => {}
        }
    }
    Err("assay_bench: #[bench] belongs to a function".to_owned())
}

/// The calls of one benchmark for each of consts or types.
fn make(h: &Head, o: &Options) -> Result<String, String> {
    if h.parameters != o.args.is_some() as usize {
        return Err(match h.parameters {
            1 => "assay_bench: what its parameter is: #[bench(args = [A, B, …])]".to_owned(),
            0 => "assay_bench: args are given, but the function takes none".to_owned(),
            _ => "assay_bench: one parameter is possible (a tuple holds more)".to_owned(),
        });
    }
    let given = if o.generics.is_empty() { vec![String::new()] } else { o.generics.clone() };
    let mut calls = String::new();
    for generic in &given {
        let (path, part) = match generic.as_str() {
            "" => (h.name.clone(), "::core::option::Option::None".to_owned()),
            g => (
                format!("{}::<{{{}}}>", h.name, g),
                format!("::core::option::Option::Some({:?})", g),
            ),
        };
        // A type is no expression: it stands without braces.
        let path = if is_type(generic) { path.replace("<{", "<").replace("}>", ">") } else { path };
        calls += &match (&o.args, h.takes_bencher) {
            (None, false) => format!("r.plain({}, ::core::option::Option::None, || {}());", part, path),
            (None, true) => format!("r.bencher({}, ::core::option::Option::None, |b| {{ {}(b); }});", part, path),
            (Some(args), false) => format!(
                "for a in {} {{ r.plain({}, ::core::option::Option::Some(a.to_string()), || {}(a.clone())); }}",
                args, part, path
            ),
            (Some(args), true) => format!(
                "for a in {} {{ r.bencher({}, ::core::option::Option::Some(a.to_string()), |b| {{ {}(b, a.clone()); }}); }}",
                args, part, path
            ),
        };
    }
    let name = o.name.clone().unwrap_or_else(|| format!("{:?}", h.name.trim_start_matches("r#")));
    let threads = o.threads.as_ref().map_or(String::new(), |t| format!("r.threads({});", t));
    let counter = o.counter.as_ref().map_or(String::new(), |c| format!("r.counter({});", c));
    Ok(format!(
        "::assay_bench::__register! {{ {}, |r: &mut ::assay_bench::__private::Runner| {{ {} {} {} }} }}",
        name, threads, counter, calls
    ))
}

/// `8`, `-1`, `'a'`, `true` and `N + 1` are constants; what begins with a letter or bracket is a type,
/// unless it is all capitals.
fn is_type(generic: &str) -> bool {
    let first = generic.chars().next().unwrap_or('0');
    let word: String = generic.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let constant =
        word == "true" || word == "false" || (word.len() > 1 && word == word.to_uppercase());
    (first.is_alphabetic() || first == '&' || first == '(' || first == '[') && !constant
}
