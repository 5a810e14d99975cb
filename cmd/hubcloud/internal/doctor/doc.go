// Package doctor checks every component of an installation and advises what to do.
//
// A component is checked from two sides. Check, in the doctor's own process, checks what makes
// sense without a service: files, disks, ports, certificates, clocks, the database, the mail
// server, and how the last service ended. What the running service knows about itself, such as its
// broker, its projections, its hubs and its journals, the doctor asks it for: Handler answers on
// the admin port with the service's findings. A component has the findings of both sides. Only
// while no service answers, the doctor itself asks an external broker, and looks for damage in the
// files of an embedded one.
//
// All checks run concurrently, each with its own time limit, and Check returns their verdicts in a
// fixed order in less than five seconds. A check that fails or hangs does not affect the others.
// What several checks need (broker, database, the service's answer) is fetched once; the component
// concerned reports what cannot be fetched, and the other checks report an unknown state.
//
// The doctor changes nothing, except that it creates and removes a file of a few bytes in the data
// directory to test disk and clock. Its output contains no secrets.
package doctor
