// Package snippets holds the blocks of code in the documentation against the
// code itself, so that nothing is shown that does not compile.
//
// Every fenced block names its language. What is done with it:
//
//   - A block of any language under a mark,
//
//     <!-- snippet: examples/cron/main.go -->
//     <!-- snippet: examples/migrate/redsync/after.go#lock -->
//
//     is that file, or the region of that name in it, letter for letter. Go
//     files so shown belong to a module that make lint vets and make test
//     builds. A region is between two comments, "snippet: NAME" and
//     "end snippet", in the way the file's language has them.
//
//   - A go block has a mark.
//
//   - A sh or bash block, and the lines after "$ " in a console block, are
//     parsed by that shell. Arguments takes them apart, so that the
//     command can check its own flags.
//
// Other languages are taken as they are. The links between the files are followed.
package snippets
