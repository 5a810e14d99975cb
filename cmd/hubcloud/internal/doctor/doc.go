// Package doctor looks at every component of an installation and says what is wrong with it and
// what to do: for whoever is called at night.
//
// Examine runs all its checks side by side, each with a time of its own, and gives their verdicts
// in an order that does not change. One check that fails, or that gets no answer, hides no other.
// What several checks need (the broker, the database, the service's metrics) is reached once, and
// what cannot be reached is told by the component that it is, while the others say that they do not
// know.
//
// It works from what a service leaves in its data directory, from the addresses that it is given,
// or both, and says what it can when nothing runs. It changes nothing but for a file of a few bytes
// in the data directory, which it removes again, to learn how the disk and the clock of the file
// system do. What it reads of the broker can be some seconds old, since any server may answer: it
// advises, and decides nothing. No secret is in what it says: not the mail server's password, no
// credentials of the broker or the database.
package doctor
