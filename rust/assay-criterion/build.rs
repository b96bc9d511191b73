// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the C library with the C compiler that is there (CC, or `cc`).
//!
//! `c/` is a link to the sources in the repository, and a copy of them in the package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn fail(message: &str) -> ! {
    eprintln!("assay-criterion: {}", message);
    std::process::exit(1)
}

/// CC_<target>, CC, cc: as the `cc` crate looks.
fn compiler(target: &str) -> Vec<String> {
    let under = target.replace('-', "_");
    let names = [format!("CC_{}", target), format!("CC_{}", under), "CC".to_owned()];
    for name in &names {
        println!("cargo:rerun-if-env-changed={}", name);
        match env::var(name) {
            Ok(value) if !value.trim().is_empty() => {
                return value.split_whitespace().map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    let host = env::var("HOST").unwrap_or_default();
    if host != target {
        if let Some(arch) = target.split('-').next() {
            return vec![format!("{}-linux-gnu-gcc", arch)];
        }
    }
    vec!["cc".to_owned()]
}

fn run(mut command: Command, what: &str) {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!("{} failed: {:?}", what, command)),
        Err(e) => fail(&format!(
            "cannot run {:?}: {}: a C compiler is needed (apt install gcc, or set CC)",
            command.get_program(),
            e
        )),
    }
}

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let target = env::var("TARGET").expect("cargo sets it");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        fail("only Linux is supported");
    }
    let source = here.join("c");
    let list = source.join("harness/sources.txt");
    let names = fs::read_to_string(&list)
        .unwrap_or_else(|e| fail(&format!("cannot read '{}': {}", list.display(), e)));
    println!("cargo:rerun-if-changed={}", list.display());
    let cc = compiler(&target);

    for file in names.lines().filter(|l| l.ends_with(".c")) {
        println!("cargo:rerun-if-changed={}", source.join(file).display());
    }
    let objects = compile(&cc, &source, &out, &units(&names));
    watch_headers(&source);
    archive(&out, &objects, &target);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=assay_bench");
    println!("cargo:rustc-link-lib=m");
}

/// What follows a line `@-O…`, as one file: half of what compiling takes is headers and the compiler's start.
fn units(names: &str) -> Vec<(String, String)> {
    let mut units: Vec<(String, String)> = Vec::new();
    for line in names.lines() {
        match (line.strip_prefix('@'), units.last_mut()) {
            (Some(option), _) => units.push((option.to_owned(), String::new())),
            (_, Some(unit)) if line.ends_with(".c") => {
                unit.1.push_str("#include \"");
                unit.1.push_str(line);
                unit.1.push_str("\"\n");
            }
            _ => {}
        }
    }
    units
}

fn compile(cc: &[String], source: &Path, out: &Path, units: &[(String, String)]) -> Vec<PathBuf> {
    let alone = env::var("NUM_JOBS").as_deref() == Ok("1");
    let mut children = Vec::new();
    let mut objects = Vec::new();
    for (i, (option, text)) in units.iter().enumerate() {
        let file = out.join(format!("unit{}.c", i));
        let object = file.with_extension("o");
        if let Err(e) = fs::write(&file, text) {
            fail(&format!("cannot write '{}': {}", file.display(), e));
        }
        let mut command = Command::new(&cc[0]);
        command.args(&cc[1..]);
        command.args(&[
            "-std=gnu17",
            option,
            "-fPIC",
            "-fvisibility=hidden",
            "-w",
            "-c",
            "-D_GNU_SOURCE",
            "-fno-strict-aliasing",
        ]);
        command.arg(format!("-DASSAY_VERSION=\"{}\"", env!("CARGO_PKG_VERSION")));
        command.arg("-I").arg(source).arg("-I").arg(source.join("include"));
        command.arg("-o").arg(&object).arg(&file).stdin(Stdio::null());
        match command.spawn() {
            Ok(child) => children.push(child),
            Err(e) => fail(&format!(
                "cannot run '{}': {}: a C compiler is needed (apt install gcc, or set CC)",
                cc[0], e
            )),
        }
        objects.push(object);
        if alone {
            finish(&mut children);
        }
    }
    finish(&mut children);
    objects
}

fn finish(children: &mut Vec<Child>) {
    for mut child in children.drain(..) {
        if !child.wait().map(|status| status.success()).unwrap_or(false) {
            fail("the C library does not compile: the compiler's message is above");
        }
    }
}

fn watch_headers(source: &Path) {
    for folder in &["harness", "harness/criterion", "base", "stats", "chart", "include/assay"] {
        for entry in fs::read_dir(source.join(folder)).into_iter().flatten().flatten() {
            if entry.path().extension().map_or(false, |e| e == "h") {
                println!("cargo:rerun-if-changed={}", entry.path().display());
            }
        }
    }
}

fn archive(out: &Path, objects: &[PathBuf], target: &str) {
    let name = format!("AR_{}", target.replace('-', "_"));
    println!("cargo:rerun-if-env-changed={}", name);
    println!("cargo:rerun-if-env-changed=AR");
    let ar = env::var(&name).or_else(|_| env::var("AR")).unwrap_or_else(|_| "ar".to_owned());
    let library = out.join("libassay_bench.a");
    let _ = fs::remove_file(&library); // ar adds to what is there
    let mut command = Command::new(ar);
    command.arg("crs").arg(&library).args(objects);
    run(command, "ar");
}
