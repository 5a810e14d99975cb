// Package projector keeps the read models up to date with the streams.
//
// What it promises:
//
//   - Each projection applies its stream in order from its checkpoint; rows and checkpoint are
//     committed together (see package apply). Every event is applied once, even if several
//     processes project.
//   - One process at a time projects: the one that holds the ProjectorLock. The others stand by.
//     One of them takes over within a second after that process ends, and within 5 s if it hangs or
//     is cut off. Each projector has a term, which every transaction checks: once the next
//     projector has taken over, the transactions of the previous one fail, and it stands by again.
//   - An event that cannot be read or applied stops its projection; everything before the event is
//     committed. Status, Ready and the metrics show the event. The projection tries it again every
//     10 s, and within a second after an operator has skipped it. The other projection goes on.
//   - If the database or the broker is away, the projections go on from their checkpoints when it
//     is back.
//   - When a program with a new definition of the read models starts on a long stream, the
//     projector first builds the read models with package rebuild.
//
// Projector.Run owns all goroutines and waits for them.
package projector
