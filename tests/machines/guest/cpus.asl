/* Performance states for eight CPUs, so that Linux's own acpi-cpufreq drives them. The control port 0xD00 is nobody's. */
DefinitionBlock ("cpus.aml", "SSDT", 2, "FLEET ", "CPUFREQ ", 1)
{
    External (\_SB.CPUS.C000, DeviceObj)
    External (\_SB.CPUS.C001, DeviceObj)
    External (\_SB.CPUS.C002, DeviceObj)
    External (\_SB.CPUS.C003, DeviceObj)
    External (\_SB.CPUS.C004, DeviceObj)
    External (\_SB.CPUS.C005, DeviceObj)
    External (\_SB.CPUS.C006, DeviceObj)
    External (\_SB.CPUS.C007, DeviceObj)
    Scope (\_SB)
    {
        Name (FPCT, Package () {
            ResourceTemplate () { Register (SystemIO, 16, 0, 0x0D00) },
            ResourceTemplate () { Register (SystemIO, 16, 0, 0x0D00) }
        })
        Name (FPSS, Package () { /* MHz, mW, transition us, bus master us, control, status */
            Package () { 3800, 350000, 10, 10, 38, 38 },
            Package () { 2800, 240000, 10, 10, 28, 28 },
            Package () { 2000, 160000, 10, 10, 20, 20 },
            Package () { 1200,  90000, 10, 10, 12, 12 },
            Package () {  800,  60000, 10, 10,  8,  8 }
        })
    }
    Scope (\_SB.CPUS.C000)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 0, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C001)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 1, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C002)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 2, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C003)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 3, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C004)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 4, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C005)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 5, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C006)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 6, 0xFC, 1 } })
    }
    Scope (\_SB.CPUS.C007)
    {
        Method (_PCT) { Return (\_SB.FPCT) }
        Method (_PSS) { Return (\_SB.FPSS) }
        Name (_PPC, 0)
        Name (_PSD, Package () { Package () { 5, 0, 7, 0xFC, 1 } })
    }
}
