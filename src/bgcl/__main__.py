from bgcl.cli import main

main()
