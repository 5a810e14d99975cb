// Package projector keeps the read models up to date with the streams.
//
// What it promises:
//
//   - Each projection applies its stream in order from its checkpoint; rows and checkpoint are
//     committed together (see package apply). Every event is applied once, whichever processes
//     race.
//   - One process at a time projects: the one that holds the ProjectorLock. The others stand by and
//     take over within a second of its end, and within 5 s if it hangs or is cut off. Each
//     projector has a term, which every transaction checks: what a projector has not committed when
//     the next one takes over fails, and it stands by again.
//   - An event that cannot be read or applied stops its projection exactly there, with everything
//     before it committed. Status, Ready and the metrics show the event. The projection tries it
//     again every 10 s, and at once when an operator skips it. The other projection goes on.
//   - A database or a broker that is away stops nothing: the projection goes on from its
//     checkpoint.
//   - When a program with a new definition starts on a long log, the projector builds the read
//     models with package rebuild before it follows the streams.
//
// Projector.Run owns all goroutines and waits for them.
package projector
