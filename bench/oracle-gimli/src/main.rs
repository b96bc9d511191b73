// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of the gimli addr2line crate in the shape of "addr2line -aif": FILE [SUP] < addresses.
use addr2line::object::{self, Object, ObjectSection, ObjectSymbol};
use std::io::{BufRead, Write};

type Slice = addr2line::gimli::EndianRcSlice<addr2line::gimli::RunTimeEndian>;

fn dwarf(o: &object::File) -> addr2line::gimli::Dwarf<Slice> {
    addr2line::gimli::Dwarf::load(|id| -> Result<Slice, ()> {
        let data = o
            .section_by_name(id.name())
            .and_then(|s| s.uncompressed_data().ok())
            .unwrap_or_default();
        Ok(Slice::new(std::rc::Rc::from(&*data), addr2line::gimli::RunTimeEndian::Little))
    })
    .unwrap()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let bytes = std::fs::read(args.next().unwrap()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let mut d = dwarf(&file);
    let sup_bytes = args.next().map(|p| std::fs::read(p).unwrap());
    if let Some(b) = &sup_bytes {
        d.sup = Some(std::sync::Arc::new(dwarf(&object::File::parse(&**b).unwrap())));
    }
    let ctx = addr2line::Context::from_dwarf(d).unwrap();
    let mut symbols: Vec<_> = file.symbols().filter(|s| s.size() > 0).collect();
    symbols.sort_by_key(|s| s.address());
    let out = std::io::stdout();
    let mut out = std::io::BufWriter::new(out.lock());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let a = u64::from_str_radix(line.trim_start_matches("0x"), 16).unwrap();
        writeln!(out, "0x{a:x}").unwrap();
        let mut any = false;
        let mut frames = ctx.find_frames(a).unwrap();
        while let Ok(Some(f)) = frames.next() {
            any = true;
            let name = f.function.as_ref().and_then(|n| n.raw_name().ok().map(|s| s.to_string()));
            let (file, line) = f
                .location
                .map(|l| (l.file.unwrap_or("??").to_string(), l.line.unwrap_or(0)))
                .unwrap_or(("??".into(), 0));
            writeln!(out, "{}\n{}:{}", name.unwrap_or("??".into()), file, line).unwrap();
        }
        if !any {
            writeln!(out, "??\n??:0").unwrap();
        }
    }
}
