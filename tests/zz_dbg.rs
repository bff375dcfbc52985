use pollpace::engine::{self, trace::Follow}; use pollpace::model::Model; use std::sync::atomic::AtomicBool;
#[test] fn dbg() {
 let text = std::fs::read_to_string("/tmp/dbg/s.toml").unwrap();
 let s = pollpace::scenario::parse("x", &text, &[]).unwrap().scenario;
 let mut m = Model::new(&s);
 for n in 1..=30 { m = Model::new(&s);
 let f = Some(Follow{tenant:None, number:n});
 let a = engine::run(&m,0,f.clone(),&AtomicBool::new(false)).unwrap(); m.couple_all();
 let b = engine::run(&m,0,f,&AtomicBool::new(false)).unwrap();
 println!("{:?}\n{:?}", a.totals, b.totals);
 let (x,y)=(format!("{:#?}",a.story),format!("{:#?}",b.story)); if x!=y {println!("task {n}\n{x}\n{y}");} }
}
